output "service_name" {
  # Autoscaling takes only a service that is there.
  depends_on = [aws_ecs_service.this]

  value = var.service
}

output "family" {
  value = aws_ecs_task_definition.this.family
}

output "log_group" {
  value = aws_cloudwatch_log_group.this.name
}

output "containers" {
  description = "The container definitions, as they were sent."
  value       = jsondecode(aws_ecs_task_definition.this.container_definitions)
}

output "task_statements" {
  description = "What the processes may do at AWS."
  value       = flatten([for policy in aws_iam_role_policy.task : jsondecode(policy.policy).Statement])
}

output "start_statements" {
  description = "What starts them may do."
  value       = jsondecode(aws_iam_role_policy.start.policy).Statement
}

output "services" {
  value = [for one in aws_ecs_service.this : {
    public_ip       = one.network_configuration[0].assign_public_ip
    circuit_breaker = one.deployment_circuit_breaker[0].enable && one.deployment_circuit_breaker[0].rollback
  }]
}
