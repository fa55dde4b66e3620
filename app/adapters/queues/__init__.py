"""The queues that carry messages to workers: RabbitMQ, or queues inside this process."""
