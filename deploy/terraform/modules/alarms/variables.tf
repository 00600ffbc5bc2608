variable "name" {
  type = string
}

variable "namespace" {
  description = "Of Outlast's metrics."
  type        = string
}

variable "queues" {
  type = set(string)
}

variable "emails" {
  type = set(string)
}

variable "dead_letters_max" {
  type = number
}

variable "database_identifier" {
  type = string
}

variable "cache_member_ids" {
  type = list(string)
}

variable "dead_queue_names" {
  description = "SQS' name of each queue's dead-letter queue."
  type        = map(string)
}

variable "edge_arn_suffixes" {
  type = object({ load_balancer = string, target_group = string })
}
