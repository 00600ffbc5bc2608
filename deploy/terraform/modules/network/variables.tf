variable "name" {
  type = string
}

variable "region" {
  type = string
}

variable "cidr" {
  type = string
}

variable "availability_zones" {
  type = list(string)
}

variable "single_nat_gateway" {
  type = bool
}

variable "caller_cidrs" {
  type = list(string)
}

variable "api_port" {
  type = number
}

variable "cache" {
  description = "Whether there is an ElastiCache."
  type        = bool
}

variable "worker_egress_ports" {
  type = set(number)
}
