"""What all tests share: tests that need a real runtime or Go skip loudly elsewhere and fail in CI."""
