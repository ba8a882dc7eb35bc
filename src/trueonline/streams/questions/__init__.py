"""What is asked of a stream: questions, their time scales, and the learners that answer them."""
