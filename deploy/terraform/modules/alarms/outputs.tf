output "topic_arn" {
  value = aws_sns_topic.this.arn
}

output "alarms" {
  description = "What each looks at."
  value       = { for name, alarm in aws_cloudwatch_metric_alarm.this : name => alarm.metric_name }
}

output "metrics" {
  description = "Of Outlast's own, those that are looked at."
  value       = sort(distinct([for alarm in aws_cloudwatch_metric_alarm.this : alarm.metric_name if alarm.namespace == var.namespace]))
}
