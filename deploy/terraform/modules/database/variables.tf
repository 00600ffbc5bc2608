variable "name" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "security_group_id" {
  type = string
}

variable "engine_version" {
  type = string
}

variable "instance_class" {
  type = string
}

variable "storage_gb" {
  type = number
}

variable "backup_days" {
  type = number
}

variable "password" {
  type      = string
  sensitive = true
  ephemeral = true
}

variable "password_version" {
  type = number
}

variable "ca_file" {
  description = "Path of RDS' certificate bundle in the image; null: the server is not checked."
  type        = string
}
