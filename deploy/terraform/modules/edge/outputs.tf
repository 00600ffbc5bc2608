output "dns_name" {
  value = aws_lb.this.dns_name
}

output "zone_id" {
  value = aws_lb.this.zone_id
}

output "target_group_arn" {
  # The service must not start before a listener is there: ECS refuses a target group without a load balancer.
  depends_on = [aws_lb_listener.https]

  value = aws_lb_target_group.api.arn
}

output "arn_suffixes" {
  description = "As CloudWatch names them."
  value = {
    load_balancer = aws_lb.this.arn_suffix
    target_group  = aws_lb_target_group.api.arn_suffix
  }
}

output "health_path" {
  value = aws_lb_target_group.api.health_check[0].path
}

output "idle_seconds" {
  value = aws_lb.this.idle_timeout
}

output "internal" {
  value = aws_lb.this.internal
}
