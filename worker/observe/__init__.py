"""What is live on the topics: lag, rates, who works, the newest verdicts."""
