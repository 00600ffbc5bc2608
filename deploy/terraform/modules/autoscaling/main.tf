# More workers while a job waits too long, fewer once nothing has waited for a while and most slots are free.
#
# Steps, no target tracking: that takes for granted that twice the tasks halve the metric, and an age does not.

locals {
  scaled = "service/${var.cluster_name}/${var.service_name}"

  ages    = { for nth, queue in var.queues : "age${nth}" => "OldestDueSeconds.${queue}" }
  running = { for nth, queue in var.queues : "run${nth}" => "JobsRunning.${queue}" }

  oldest     = length(var.queues) == 1 ? "age0" : "MAX([${join(", ", keys(local.ages))}])"
  in_use     = "(${join(" + ", keys(local.running))})"
  half_empty = "${local.in_use} < 0.5 * tasks * ${var.slots_per_task}"
}

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "ecs"
  resource_id        = local.scaled
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = var.tasks_min
  max_capacity       = var.tasks_max
}

resource "aws_appautoscaling_policy" "out" {
  name               = "${var.service_name}-out"
  policy_type        = "StepScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension

  step_scaling_policy_configuration {
    adjustment_type          = "PercentChangeInCapacity"
    min_adjustment_magnitude = 1
    metric_aggregation_type  = "Maximum"
    cooldown                 = 120 # a task takes about a minute to start

    step_adjustment {
      metric_interval_lower_bound = 0
      metric_interval_upper_bound = 3 * var.wait_seconds
      scaling_adjustment          = 50
    }

    step_adjustment {
      metric_interval_lower_bound = 3 * var.wait_seconds
      scaling_adjustment          = 100
    }
  }
}

resource "aws_appautoscaling_policy" "in" {
  name               = "${var.service_name}-in"
  policy_type        = "StepScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  resource_id        = aws_appautoscaling_target.this.resource_id
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension

  step_scaling_policy_configuration {
    adjustment_type         = "ChangeInCapacity"
    metric_aggregation_type = "Maximum"
    cooldown                = 300

    step_adjustment {
      metric_interval_lower_bound = 0
      scaling_adjustment          = -1
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "out" {
  alarm_name          = "${var.name}-${var.service_name}-jobs-wait"
  alarm_description   = "The oldest job of ${join(", ", var.queues)} waits longer than ${var.wait_seconds} s: more workers."
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.wait_seconds
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_appautoscaling_policy.out.arn]

  metric_query {
    id          = "oldest"
    expression  = local.oldest
    label       = "oldest waiting job, s"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = local.ages

    content {
      id = metric_query.key

      metric {
        namespace   = var.namespace
        metric_name = metric_query.value
        period      = 60
        stat        = "Maximum"
      }
    }
  }
}

# Not while PostgreSQL is away: then no queue is named at all, and all of them look idle.
resource "aws_cloudwatch_metric_alarm" "in" {
  alarm_name          = "${var.name}-${var.service_name}-slots-free"
  alarm_description   = "Nothing waits in ${join(", ", var.queues)} and most slots are free: fewer workers."
  comparison_operator = "GreaterThanOrEqualToThreshold"
  threshold           = 1
  evaluation_periods  = 10
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_appautoscaling_policy.in.arn]

  metric_query {
    id          = "idle"
    expression  = "IF((up >= 1) AND (${local.oldest} < 1) AND (${local.half_empty}), 1, 0)"
    label       = "idle"
    return_data = true
  }

  metric_query {
    id = "up"

    metric {
      namespace   = var.namespace
      metric_name = "DatabaseUp"
      period      = 60
      stat        = "Minimum"
    }
  }

  metric_query {
    id = "tasks"

    metric {
      namespace   = "ECS/ContainerInsights"
      metric_name = "RunningTaskCount"
      period      = 60
      stat        = "Maximum"
      dimensions  = { ClusterName = var.cluster_name, ServiceName = var.service_name }
    }
  }

  dynamic "metric_query" {
    for_each = merge(local.ages, local.running)

    content {
      id = metric_query.key

      metric {
        namespace   = var.namespace
        metric_name = metric_query.value
        period      = 60
        stat        = "Maximum"
      }
    }
  }
}
