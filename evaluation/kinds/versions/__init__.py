"""What a lab's boards guarantee in a session of OpenFlow 1.0, and in one of 1.3."""
