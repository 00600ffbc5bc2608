variable "name" {
  description = "Of the deployment."
  type        = string
}

variable "service" {
  description = "Which of its processes."
  type        = string
}

variable "region" {
  type = string
}

variable "cluster_arn" {
  type = string
}

variable "tasks" {
  description = "How many at first; null: none, it is run by hand."
  type        = number
  default     = null
}

variable "image" {
  type = string
}

variable "command" {
  description = "Words after `outlast`."
  type        = list(string)
}

variable "user" {
  type = string
}

variable "cpu" {
  type = number
}

variable "memory" {
  type = number
}

variable "cpu_architecture" {
  type = string
}

variable "environment" {
  type = map(string)
}

variable "secrets" {
  description = "Where ECS finds the value of each variable that is a secret."
  type        = map(string)
}

variable "secret_arns" {
  description = "The same secrets, as the starting role is allowed them."
  type        = list(string)
}

variable "statements" {
  description = "Of the task role's policy."
  type = list(object({
    Sid      = string
    Effect   = string
    Action   = list(string)
    Resource = list(string)
  }))
  default = []
}

variable "ecr_repository_arns" {
  type = list(string)
}

variable "stop_seconds" {
  description = "Between SIGTERM and SIGKILL."
  type        = number

  validation {
    condition     = var.stop_seconds >= 2 && var.stop_seconds <= 120
    error_message = "Fargate takes 2 to 120."
  }
}

variable "scratch_path" {
  description = "Where the process may write, a VOLUME of the image that belongs to its user; null: nowhere."
  type        = string
  default     = null
}

variable "health_command" {
  description = "As ECS wants it; null for processes that listen nowhere: what they do is in the metrics."
  type        = list(string)
  default     = null
}

variable "sidecars" {
  description = "More container definitions."
  type        = any
  default     = []
}

variable "port" {
  type    = number
  default = null
}

variable "target_group_arn" {
  type    = string
  default = null
}

variable "subnet_ids" {
  type = list(string)
}

variable "security_group_id" {
  type = string
}

variable "log_days" {
  type = number
}
