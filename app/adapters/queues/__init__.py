"""What carries messages to workers: RabbitMQ, or queues inside this process."""
