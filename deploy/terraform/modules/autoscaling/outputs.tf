output "metrics" {
  description = "Of Outlast's own, those that decide."
  value = sort(distinct([
    for query in concat(tolist(aws_cloudwatch_metric_alarm.out.metric_query), tolist(aws_cloudwatch_metric_alarm.in.metric_query)) :
    query.metric[0].metric_name if length(query.metric) > 0 && try(query.metric[0].namespace == var.namespace, false)
  ]))
}

output "idle" {
  description = "When there are to be fewer."
  value       = one([for query in aws_cloudwatch_metric_alarm.in.metric_query : query.expression if query.id == "idle"])
}

output "missing" {
  description = "What the two alarms make of silence."
  value       = [aws_cloudwatch_metric_alarm.out.treat_missing_data, aws_cloudwatch_metric_alarm.in.treat_missing_data]
}

output "limits" {
  value = [aws_appautoscaling_target.this.min_capacity, aws_appautoscaling_target.this.max_capacity]
}
