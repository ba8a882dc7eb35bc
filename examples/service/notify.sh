#!/bin/sh
# Sends an alert to a phone with the app ntfy. Choose a topic that nobody guesses: whoever knows it can read it.
exec curl --fail --silent --max-time 20 --data "$TRUEONLINE_ALERT" "https://ntfy.sh/${NTFY_TOPIC:-choose-a-topic}"
