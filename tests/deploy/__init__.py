"""Tests of what is deployed: the compose file and the image."""
