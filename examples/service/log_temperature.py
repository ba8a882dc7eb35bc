"""Log the temperature of a Raspberry Pi's processor, once a minute: python log_temperature.py /var/log/temperature.csv."""

import sys
import time
from datetime import datetime
from pathlib import Path

SENSOR = Path("/sys/class/thermal/thermal_zone0/temp")  # thousandths of a degree


def log(file: Path, sensor: Path = SENSOR, seconds: float = 60.0, samples: int | None = None) -> None:
    """Append a line to the file every so many seconds."""
    with open(file, "a", encoding="ascii", buffering=1) as log:
        if not log.tell():
            log.write("time,temperature\n")
        while samples is None or samples > 0:
            now = datetime.now().astimezone().isoformat(timespec="seconds")
            log.write(f"{now},{int(sensor.read_text()) / 1000}\n")
            samples = None if samples is None else samples - 1
            time.sleep(seconds)


if __name__ == "__main__":
    log(Path(sys.argv[1]))
