variable "name" {
  description = "Of the deployment."
  type        = string
}

variable "cluster_name" {
  type = string
}

variable "service_name" {
  type = string
}

variable "namespace" {
  description = "Of the metrics."
  type        = string
}

variable "queues" {
  description = "Whose oldest job counts."
  type        = list(string)
}

variable "wait_seconds" {
  description = "What a job may wait before there are more workers."
  type        = number
}

variable "slots_per_task" {
  type = number
}

variable "tasks_min" {
  type = number
}

variable "tasks_max" {
  type = number
}
