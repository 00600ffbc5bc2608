output "arn" {
  value = aws_secretsmanager_secret.this.arn
}

output "value_from" {
  description = "What a task definition names. With the version in it, another value rolls the services."
  value       = "${aws_secretsmanager_secret.this.arn}:::${aws_secretsmanager_secret_version.this.version_id}"
}
