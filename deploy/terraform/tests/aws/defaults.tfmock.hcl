# What the real provider would have computed where others check its form.

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::111122223333:role/mocked" }
}

mock_resource "aws_lb" {
  defaults = { arn = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:loadbalancer/app/mocked/0123456789abcdef" }
}

mock_resource "aws_lb_target_group" {
  defaults = { arn = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:targetgroup/mocked/0123456789abcdef" }
}

mock_resource "aws_lb_listener" {
  defaults = { arn = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:listener/app/mocked/0123456789abcdef/0123456789abcdef" }
}

mock_resource "aws_ecs_cluster" {
  defaults = { arn = "arn:aws:ecs:eu-central-1:111122223333:cluster/mocked" }
}

mock_resource "aws_ecs_task_definition" {
  defaults = { arn = "arn:aws:ecs:eu-central-1:111122223333:task-definition/mocked:1" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:mocked" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-central-1:111122223333:mocked" }
}

mock_resource "aws_appautoscaling_policy" {
  defaults = { arn = "arn:aws:autoscaling:eu-central-1:111122223333:scalingPolicy:00000000-0000-0000-0000-000000000000:policyName/mocked" }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:mocked-abcdef" }
}

mock_resource "aws_sqs_queue" {
  defaults = { arn = "arn:aws:sqs:eu-central-1:111122223333:mocked" }
}

mock_resource "aws_db_instance" {
  defaults = { endpoint = "mocked.example.internal:5432" }
}
