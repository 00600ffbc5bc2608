output "load_balancer" {
  description = "Where the API's name has to lead (an alias record)."
  value       = { dns_name = module.edge.dns_name, zone_id = module.edge.zone_id }
}

output "cluster" {
  value = aws_ecs_cluster.this.name
}

output "once" {
  description = "What `aws ecs run-task` needs for a one-off task: migrate, or operator with another command."
  value = {
    for name, task in module.once : name => {
      task_definition = task.family
      log_group       = task.log_group
      network = jsonencode({
        awsvpcConfiguration = {
          subnets        = module.network.task_subnet_ids
          securityGroups = [module.network.security_group_ids["once"]]
          assignPublicIp = "DISABLED"
        }
      })
    }
  }
}

output "alarms_topic_arn" {
  value = module.alarms.topic_arn
}

output "sqs_queues" {
  description = "SQS' name of each queue; none without transport sqs."
  value       = merge(module.queue[*].names...)
}
