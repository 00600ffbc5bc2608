module "autoscaling" {
  source   = "./modules/autoscaling"
  for_each = var.workers

  name           = var.name
  cluster_name   = aws_ecs_cluster.this.name
  service_name   = module.worker[each.key].service_name
  namespace      = module.metrics.namespace
  queues         = distinct(each.value.queues)
  wait_seconds   = each.value.wait_seconds
  slots_per_task = each.value.processes * each.value.concurrency
  tasks_min      = each.value.tasks_min
  tasks_max      = each.value.tasks_max
}

# The API's work is its requests: there the processor tells.
resource "aws_appautoscaling_target" "api" {
  service_namespace  = "ecs"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${module.api.service_name}"
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = var.api.tasks_min
  max_capacity       = var.api.tasks_max
}

resource "aws_appautoscaling_policy" "api" {
  name               = "api-cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.api.service_namespace
  resource_id        = aws_appautoscaling_target.api.resource_id
  scalable_dimension = aws_appautoscaling_target.api.scalable_dimension

  target_tracking_scaling_policy_configuration {
    target_value = 60

    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}
