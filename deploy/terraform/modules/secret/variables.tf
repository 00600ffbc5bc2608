variable "name" {
  type = string
}

variable "description" {
  type = string
}

variable "value" {
  type      = string
  sensitive = true
  ephemeral = true
}

variable "value_version" {
  description = "Counts up with every other value."
  type        = number
}
