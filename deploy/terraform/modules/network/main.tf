# Three tiers in each zone: public (ways out, a public load balancer), tasks, and data, which has no way out at all.

locals {
  zones    = { for nth, zone in var.availability_zones : zone => nth }
  gateways = var.single_nat_gateway ? { (var.availability_zones[0]) = 0 } : local.zones
}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true

  tags = { Name = var.name }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id

  tags = { Name = var.name }
}

resource "aws_subnet" "public" {
  for_each = local.zones

  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr, 8, each.value)

  tags = { Name = "${var.name}-public-${each.key}" }
}

resource "aws_subnet" "tasks" {
  for_each = local.zones

  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr, 4, 1 + each.value)

  tags = { Name = "${var.name}-tasks-${each.key}" }
}

resource "aws_subnet" "data" {
  for_each = local.zones

  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr, 8, 128 + each.value)

  tags = { Name = "${var.name}-data-${each.key}" }
}

resource "aws_eip" "way_out" {
  for_each = local.gateways

  domain = "vpc"

  tags = { Name = "${var.name}-${each.key}" }
}

resource "aws_nat_gateway" "this" {
  for_each = local.gateways

  allocation_id = aws_eip.way_out[each.key].id
  subnet_id     = aws_subnet.public[each.key].id

  tags = { Name = "${var.name}-${each.key}" }

  depends_on = [aws_internet_gateway.this]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id

  tags = { Name = "${var.name}-public" }
}

resource "aws_route" "internet" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  for_each = aws_subnet.public

  subnet_id      = each.value.id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "tasks" {
  for_each = local.zones

  vpc_id = aws_vpc.this.id

  tags = { Name = "${var.name}-tasks-${each.key}" }
}

resource "aws_route" "way_out" {
  for_each = local.zones

  route_table_id         = aws_route_table.tasks[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[var.single_nat_gateway ? var.availability_zones[0] : each.key].id
}

resource "aws_route_table_association" "tasks" {
  for_each = aws_subnet.tasks

  subnet_id      = each.value.id
  route_table_id = aws_route_table.tasks[each.key].id
}

resource "aws_route_table" "data" {
  vpc_id = aws_vpc.this.id

  tags = { Name = "${var.name}-data" }
}

resource "aws_route_table_association" "data" {
  for_each = aws_subnet.data

  subnet_id      = each.value.id
  route_table_id = aws_route_table.data.id
}

# Layers of images come from S3: not through the gateways, which charge for every byte.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for table in aws_route_table.tasks : table.id]

  tags = { Name = "${var.name}-s3" }
}
