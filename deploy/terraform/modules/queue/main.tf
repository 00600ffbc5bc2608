# The SQS queues of Outlast's queues, and a dead-letter queue for each.
#
# PostgreSQL says which job is given up, never SQS: maxReceiveCount is high, Outlast refuses less than 100, and what ends
# in a dead-letter queue are ids of jobs that are published again. Something there is a reason to look, not a loss.

locals {
  chars_max = 80 # by SQS
  hash_hex  = 16

  # As app/transport/sqs_names.py has it: D stands for a dot, H goes before the hash of a name that is too long.
  plain = { for queue in var.queues : queue => "${var.prefix}${replace(queue, ".", "D")}" }
  names = {
    for queue, name in local.plain : queue => (
      length(name) <= local.chars_max
      ? name
      : "${substr(name, 0, local.chars_max - local.hash_hex - 1)}H${substr(sha256(queue), 0, local.hash_hex)}"
    )
  }

  # Another prefix, so that Outlast does not take it for a queue.
  dead_prefix = "dlq-"
  dead_names = {
    for queue, name in local.names : queue => (
      length(name) <= local.chars_max - length(local.dead_prefix)
      ? "${local.dead_prefix}${name}"
      : "${local.dead_prefix}${substr(name, 0, local.chars_max - length(local.dead_prefix) - local.hash_hex - 1)}H${substr(sha256(queue), 0, local.hash_hex)}"
    )
  }
}

resource "aws_sqs_queue" "dead" {
  for_each = local.dead_names

  name                      = each.value
  message_retention_seconds = 14 * 24 * 3600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue" "this" {
  for_each = local.names

  name                       = each.value
  visibility_timeout_seconds = ceil(var.lease_seconds)
  message_retention_seconds  = 4 * 24 * 3600
  sqs_managed_sse_enabled    = true
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead[each.key].arn
    maxReceiveCount     = var.max_receive_count
  })
}

resource "aws_sqs_queue_policy" "tls_only" {
  for_each = merge(
    { for queue, made in aws_sqs_queue.this : queue => made },
    { for queue, made in aws_sqs_queue.dead : "${queue} (dead)" => made },
  )

  queue_url = each.value.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "NothingUnencrypted"
      Effect    = "Deny"
      Principal = "*"
      Action    = "sqs:*"
      Resource  = each.value.arn
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}
