"""A mosquitto for tests."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import threading
from contextlib import contextmanager

import pytest

from tests.processes import PATIENCE
from tests.processes import wait_for as until
from tests.streams.streams import wait_for

MOSQUITTO = shutil.which("mosquitto", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))

with_broker = pytest.mark.skipif(
    MOSQUITTO is None or importlib.util.find_spec("paho") is None, reason="needs mosquitto and paho-mqtt"
)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Broker:
    """A mosquitto of our own on a free port of this machine, and perhaps on others that the settings name."""

    def __init__(self, folder, *settings, queued=100_000):
        self.port = free_port()
        self.config = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", *(settings or ["allow_anonymous true"])]
        lines += ["user root", f"max_queued_messages {queued}"]  # of 1000, mosquitto would drop some itself in a hurry
        self.config.write_text("\n".join(lines) + "\n")
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self.config)], stderr=subprocess.DEVNULL)
        until(self.answers, "the start of the broker")

    def answers(self):
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def url(self, topic="arm", user=""):
        return f"mqtt://{user}127.0.0.1:{self.port}/{topic}"


@contextmanager
def publisher(port):
    """A function that publishes, and waits until the broker has what it sent. Its client connects again when needed."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2)
    client.max_inflight_messages_set(1000)
    client.connect("127.0.0.1", port)
    client.loop_start()

    def send(*messages, topic="arm", retain=False):
        until(client.is_connected, "the publisher's connection")
        payloads = [message if isinstance(message, bytes) else json.dumps(message) for message in messages]
        for sent in [client.publish(topic, payload, qos=1, retain=retain) for payload in payloads]:
            sent.wait_for_publish(PATIENCE)
            assert sent.is_published()

    send.client = client
    try:
        yield send
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def listener(port):
    """A list of all messages, as pairs of the topic and what it says, in the order in which they come."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    heard, ready = [], threading.Event()
    client = Client(CallbackAPIVersion.VERSION2)
    client.reconnect_delay_set(0.1, 0.5)
    client.on_connect = lambda *_: client.subscribe("#", qos=1)
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = lambda _, __, message: heard.append((message.topic, json.loads(message.payload), message.retain))
    client.connect("127.0.0.1", port)
    client.loop_start()
    assert ready.wait(60)
    try:
        yield heard
    finally:
        client.disconnect()
        client.loop_stop()


def certificate(folder, name, signer=None):
    """A certificate for 127.0.0.1, by openssl: of an authority, or signed by one."""
    key, made = folder / f"{name}.key", folder / f"{name}.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-keyout", str(key), "-out", str(made)]
    if signer is not None:
        command += ["-CA", str(folder / f"{signer}.crt"), "-CAkey", str(folder / f"{signer}.key")]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)
    return made


class Guarded(Broker):
    """Wants a user, also without TLS. Has the certificate of a small authority at another port."""

    def __init__(self, folder):
        if shutil.which("openssl") is None:
            pytest.skip("needs openssl")
        self.ca = certificate(folder, "authority")
        certificate(folder, "broker", "authority")
        passwords = folder / "passwords"
        passwords.write_text("ann:s3cret/@\nbob:pass2word\n")
        subprocess.run([shutil.which("mosquitto_passwd") or "mosquitto_passwd", "-U", str(passwords)], check=True)
        self.tls_port, self.open_port = free_port(), free_port()
        settings = ["per_listener_settings true", "allow_anonymous false", f"password_file {passwords}"]
        settings += [f"listener {self.open_port} 127.0.0.1", "allow_anonymous true"]
        settings += [f"listener {self.tls_port} 127.0.0.1", "allow_anonymous false", f"password_file {passwords}"]
        settings += [f"certfile {folder / 'broker.crt'}", f"keyfile {folder / 'broker.key'}"]
        super().__init__(folder, *settings)

    def tls_url(self, user="", host="127.0.0.1"):
        return f"mqtts://{user}{host}:{self.tls_port}/arm"


def received(source, samples):
    """Read so many samples from a source: their times and values."""
    times, values = wait_for(source, samples)
    return times.tolist(), values.tolist()
