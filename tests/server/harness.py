"""Servers that a test starts and ends: `basalt serve`, and redis-server to compare with."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import redis

PROGRAM = os.environ["BASALT"]


class Basalt:
    """One server on a database in a directory of its own. It may be killed and started again."""

    def __init__(self, *options, in_memory=False):
        self.home = tempfile.mkdtemp(prefix="basalt_server_")
        self.options = options
        self.in_memory = in_memory
        self.socket = os.path.join(self.home, "socket")
        self.start()

    def start(self):
        path = [] if self.in_memory else [os.path.join(self.home, "db")]
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *path, "--port", "0", "--unix-socket", self.socket,
             "--memory-budget", "64M", *self.options],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.port = int(line.rsplit(":", 1)[1])
        assert self.process.stdout.readline() == f"listening on {self.socket}\n"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Ends it as an operator does; gives its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        return code

    def client(self, **options):
        return redis.Redis(unix_socket_path=self.socket, **options)

    def raw(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return connection

    def remove(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.home)


class RedisServer:
    """Debian's redis-server, without persistence, on a Unix socket."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="redis_server_")
        self.socket = os.path.join(self.home, "socket")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--dir", self.home],
            stdout=subprocess.DEVNULL)
        for _ in range(1000):
            if os.path.exists(self.socket):
                break
            time.sleep(0.02)

    def remove(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.home)


class ServerTest(unittest.TestCase):
    """A test with a server of its own, `self.server`, for all functions of the class."""

    OPTIONS = ()
    IN_MEMORY = True

    @classmethod
    def setUpClass(cls):
        cls.server = Basalt(*cls.OPTIONS, in_memory=cls.IN_MEMORY)

    @classmethod
    def tearDownClass(cls):
        cls.server.remove()
