variable "name" {
  type = string
}

variable "region" {
  type = string
}

variable "image" {
  description = "Of the collector."
  type        = string
}

variable "user" {
  type = string
}

variable "api_port" {
  type = number
}

variable "api_token_value_from" {
  type = string
}

variable "queues" {
  type = set(string)
}
