output "namespace" {
  value = local.namespace
}

output "names" {
  value = sort([for filter in aws_cloudwatch_log_metric_filter.this : filter.name])
}

output "sidecar" {
  description = "The collector's container definition."
  value = {
    name                   = "collector"
    image                  = var.image
    essential              = false
    restartPolicy          = { enabled = true, restartAttemptPeriod = 60 }
    user                   = var.user
    readonlyRootFilesystem = true
    memory                 = 256
    stopTimeout            = 10
    environment            = [{ name = "AOT_CONFIG_CONTENT", value = yamlencode(local.collector) }]
    secrets                = [{ name = "OUTLAST_API_TOKEN", valueFrom = var.api_token_value_from }]
    healthCheck            = { command = ["CMD", "/healthcheck"], interval = 30, timeout = 5, retries = 3, startPeriod = 30 }
    linuxParameters        = { capabilities = { drop = ["ALL"] } }
  }
}

output "statements" {
  description = "What the collector may do at AWS: write that one log."
  value = [{
    Sid      = "Metrics"
    Effect   = "Allow"
    Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    Resource = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }]
}
