"""What a client library takes from elsewhere than the standard library's names: one file each."""
