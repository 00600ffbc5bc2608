output "vpc_id" {
  value = aws_vpc.this.id
}

output "public_subnet_ids" {
  value = [for subnet in aws_subnet.public : subnet.id]
}

output "task_subnet_ids" {
  value = [for subnet in aws_subnet.tasks : subnet.id]
}

output "data_subnet_ids" {
  value = [for subnet in aws_subnet.data : subnet.id]
}

output "security_group_ids" {
  value = { for name, group in aws_security_group.this : name => group.id }
}

output "allowed" {
  description = "Who may talk to whom inside, as words."
  value       = sort(keys(local.allowed))
}
