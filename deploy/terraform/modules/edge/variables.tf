variable "name" {
  type = string
}

variable "vpc_id" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "security_group_id" {
  type = string
}

variable "certificate_arn" {
  type = string
}

variable "public" {
  type = bool
}

variable "api_port" {
  type = number
}

variable "access_logs_bucket" {
  type = string
}
