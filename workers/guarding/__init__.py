"""What keeps a worker process in hand whatever its handlers do: its parent, signals, copies, event loop."""
