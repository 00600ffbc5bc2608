# What wakes somebody. Outlast mends most of it by itself: an alarm says what it cannot mend, or what lasts.

locals {
  outlast = merge(
    {
      for queue in var.queues : "jobs-wait-long-${replace(queue, ".", "_")}" => {
        says      = "The oldest job of ${queue} has been due for ten minutes: no worker knows its kind, or there are too few. `outlast job explain`."
        metric    = "OldestDueSeconds.${queue}"
        over      = 600
        minutes   = 5
        otherwise = "notBreaching"
      }
    },
    {
      dead-letters = {
        says      = "Dead letters that nobody has replayed or discarded. `outlast dead groups`."
        metric    = "DeadLetters"
        over      = var.dead_letters_max
        minutes   = 1
        otherwise = "notBreaching"
      }
      audit-findings = {
        says      = "An invariant is broken. `outlast audit`."
        metric    = "AuditFindings"
        over      = 0
        minutes   = 1
        otherwise = "notBreaching"
      }
      database-away = {
        says      = "The API does not reach PostgreSQL, or no metrics arrive: autoscaling is blind."
        metric    = "DatabaseUp"
        under     = 1
        minutes   = 5
        otherwise = "breaching"
      }
      no-relay-leads = {
        says      = "No relay leads: nothing is published, scheduled or cleaned; workers claim straight from PostgreSQL."
        metric    = "RelayLeader"
        under     = 1
        minutes   = 3
        otherwise = "notBreaching"
      }
      no-workers = {
        says      = "No worker is heard."
        metric    = "Workers"
        under     = 1
        minutes   = 3
        otherwise = "notBreaching"
      }
      broker-away = {
        says      = "Not every process reaches the broker: jobs go the slower way, straight from PostgreSQL."
        metric    = "BrokerUp"
        under     = 1
        minutes   = 10
        otherwise = "notBreaching"
      }
    },
  )

  own = {
    for name, alarm in local.outlast : name => merge({ over = null, under = null }, alarm, {
      namespace                                             = var.namespace
      dimensions                                            = {}
      stat                                                  = can(alarm.under) ? "Minimum" : "Maximum"
    })
  }

  database = {
    for name, alarm in {
      database-cpu = {
        says = "PostgreSQL's processors are busy.", metric = "CPUUtilization", over = 85, under = null, stat = "Average"
      }
      database-storage = {
        says = "PostgreSQL has less than 10 GB left.", metric = "FreeStorageSpace", over = null, under = 10 * pow(1024, 3), stat = "Minimum"
      }
      database-memory = {
        says = "PostgreSQL has less than 256 MB of memory left: too many connections?", metric = "FreeableMemory", over = null, under = 256 * pow(1024, 2), stat = "Minimum"
      }
    } : name => merge(alarm, { namespace = "AWS/RDS", dimensions = { DBInstanceIdentifier = var.database_identifier }, minutes = 10, otherwise = "missing" })
  }

  cache = {
    for id in var.cache_member_ids : "cache-memory-${id}" => {
      says       = "ElastiCache is nearly full: ids go the slower way, straight from PostgreSQL."
      namespace  = "AWS/ElastiCache"
      dimensions = { CacheClusterId = id }
      metric     = "DatabaseMemoryUsagePercentage"
      stat       = "Maximum"
      over       = 90
      under      = null
      minutes    = 10
      otherwise  = "missing"
    }
  }

  dead_queues = {
    for queue, name in var.dead_queue_names : "dead-messages-${replace(queue, ".", "_")}" => {
      says       = "SQS gave up messages of ${queue}. No job is lost, its id is sent again; but why does no worker take it?"
      namespace  = "AWS/SQS"
      dimensions = { QueueName = name }
      metric     = "ApproximateNumberOfMessagesVisible"
      stat       = "Maximum"
      over       = 0
      under      = null
      minutes    = 1
      otherwise  = "notBreaching"
    }
  }

  edge = {
    api-errors = {
      says       = "The API answers with 5xx."
      namespace  = "AWS/ApplicationELB"
      dimensions = { LoadBalancer = var.edge_arn_suffixes.load_balancer, TargetGroup = var.edge_arn_suffixes.target_group }
      metric     = "HTTPCode_Target_5XX_Count"
      stat       = "Sum"
      over       = 10
      under      = null
      minutes    = 3
      otherwise  = "notBreaching"
    }
    api-away = {
      says       = "No API task is healthy."
      namespace  = "AWS/ApplicationELB"
      dimensions = { LoadBalancer = var.edge_arn_suffixes.load_balancer, TargetGroup = var.edge_arn_suffixes.target_group }
      metric     = "HealthyHostCount"
      stat       = "Maximum"
      over       = null
      under      = 1
      minutes    = 2
      otherwise  = "breaching"
    }
  }

  alarms = merge(local.own, local.database, local.cache, local.dead_queues, local.edge)
}

# Not encrypted with AWS' own key for SNS: alarms may not use that one, and would tell nobody.
resource "aws_sns_topic" "this" {
  name = "${var.name}-alarms"
}

resource "aws_sns_topic_subscription" "email" {
  for_each = var.emails

  topic_arn = aws_sns_topic.this.arn
  protocol  = "email"
  endpoint  = each.value
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.says
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.stat
  comparison_operator = each.value.over == null ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = each.value.over == null ? each.value.under : each.value.over
  period              = 60
  evaluation_periods  = each.value.minutes
  treat_missing_data  = each.value.otherwise
  alarm_actions       = [aws_sns_topic.this.arn]
  ok_actions          = [aws_sns_topic.this.arn]
}
