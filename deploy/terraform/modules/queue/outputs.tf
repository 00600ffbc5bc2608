output "prefix" {
  value = var.prefix
}

output "names" {
  description = "SQS' name of each queue."
  value       = { for queue, made in aws_sqs_queue.this : queue => made.name }
}

output "arns" {
  value = { for queue, made in aws_sqs_queue.this : queue => made.arn }
}

output "dead_names" {
  value = { for queue, made in aws_sqs_queue.dead : queue => made.name }
}

output "redrive" {
  description = "Each queue's redrive policy, and the dead-letter queue it must lead to."
  value = {
    for queue, made in aws_sqs_queue.this : queue => {
      policy = made.redrive_policy
      dead   = aws_sqs_queue.dead[queue].arn
    }
  }
}

output "policies" {
  value = [for made in aws_sqs_queue_policy.tls_only : made.policy]
}
