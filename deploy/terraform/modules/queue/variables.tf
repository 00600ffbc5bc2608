variable "prefix" {
  description = "OUTLAST_SQS_PREFIX."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,30}$", var.prefix)) && !startswith(var.prefix, "dlq-")
    error_message = "1 to 30 of A-Z, a-z, 0-9, - and _; dlq- begins the names of dead-letter queues."
  }
}

variable "queues" {
  description = "Names of Outlast's queues."
  type        = set(string)

  validation {
    condition     = alltrue([for queue in var.queues : can(regex("^[a-z0-9][a-z0-9._-]{0,99}$", queue))])
    error_message = "Queues are called [a-z0-9][a-z0-9._-]{0,99}."
  }
}

variable "lease_seconds" {
  description = "OUTLAST_LEASE_SECONDS."
  type        = number
  default     = 15
}

variable "max_receive_count" {
  description = "Deliveries after which SQS takes a message away; Outlast refuses a queue with less than 100."
  type        = number
  default     = 1000

  validation {
    condition     = var.max_receive_count >= 100 && var.max_receive_count <= 1000
    error_message = "100 to 1000: a worker that gives a message back at once counts as a delivery, too."
  }
}
