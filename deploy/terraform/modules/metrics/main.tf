# From /metrics to CloudWatch. A collector beside each API task reads what the API answers on localhost and writes it to
# a log, a line a set of labels. Metric filters make of it what alarms and autoscaling look at.
#
# Why filters: the API names a queue only while something is due or runs in it, so the metric of an idle queue would
# stop. A filter has a default for minutes in which lines came and none matched: an idle queue is 0, a collector that
# is gone is silence, and the two cannot be mistaken for each other. All API tasks say the same, hence the maximum.

locals {
  namespace = "Outlast/${var.name}"

  collector = {
    receivers = {
      prometheus = {
        config = {
          scrape_configs = [{
            job_name        = "outlast"
            scrape_interval = "15s"
            scrape_timeout  = "10s"
            metrics_path    = "/metrics"
            authorization   = { type = "Bearer", credentials = "$${env:OUTLAST_API_TOKEN}" }
            static_configs  = [{ targets = ["127.0.0.1:${var.api_port}"] }]
            metric_relabel_configs = [
              { source_labels = ["__name__"], regex = "outlast_.*", action = "keep" },
            ]
          }]
        }
      }
    }
    exporters = {
      awsemf = {
        region                  = var.region
        namespace               = local.namespace
        log_group_name          = aws_cloudwatch_log_group.this.name
        log_stream_name         = "metrics"
        dimension_rollup_option = "NoDimensionRollup"
      }
    }
    extensions = { health_check = {} }
    service = {
      extensions = ["health_check"]
      pipelines  = { metrics = { receivers = ["prometheus"], exporters = ["awsemf"] } }
    }
  }

  of_queues = merge([
    for queue in var.queues : {
      "OldestDueSeconds.${queue}" = {
        pattern = "{ $.queue = \"${queue}\" && $.outlast_oldest_due_seconds = * }"
        value   = "$.outlast_oldest_due_seconds"
        default = "0"
      }
      "JobsRunning.${queue}" = {
        pattern = "{ $.queue = \"${queue}\" && $.outlast_jobs_running = * }"
        value   = "$.outlast_jobs_running"
        default = "0"
      }
    }
  ]...)

  # No default: of these, silence is news.
  always = {
    for metric, field in {
      DatabaseUp  = "outlast_database_up"
      BrokerUp    = "outlast_broker_up"
      RelayLeader = "outlast_relay_leader"
      Workers     = "outlast_workers"
    } : metric => { pattern = "{ $.${field} = * }", value = "$.${field}", default = null }
  }

  now_and_then = {
    for metric, field in {
      DeadLetters   = "outlast_dead_letters"
      AuditFindings = "outlast_audit_findings"
    } : metric => { pattern = "{ $.${field} = * }", value = "$.${field}", default = "0" }
  }
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/outlast/${var.name}/metrics"
  retention_in_days = 7
}

resource "aws_cloudwatch_log_metric_filter" "this" {
  for_each = merge(local.of_queues, local.always, local.now_and_then)

  name           = each.key
  log_group_name = aws_cloudwatch_log_group.this.name
  pattern        = each.value.pattern

  metric_transformation {
    namespace     = local.namespace
    name          = each.key
    value         = each.value.value
    default_value = each.value.default
  }
}
