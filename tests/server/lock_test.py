"""Whoever tries to open a database that is served is told where."""

import os
import subprocess
import unittest

from harness import PROGRAM, Basalt


class Lock(unittest.TestCase):
    def setUp(self):
        self.server = Basalt()
        self.addCleanup(self.server.remove)
        self.path = os.path.join(self.server.home, "db")

    def put(self):
        return subprocess.run([PROGRAM, "put", self.path, "key", "value"], capture_output=True,
                              text=True, timeout=60, check=False)

    def lock_file(self):
        with open(os.path.join(self.path, "LOCK")) as file:
            return file.read()

    def test_the_message_names_process_and_url(self):
        url = f"redis://127.0.0.1:{self.server.port}"
        refused = self.put()
        self.assertEqual(refused.returncode, 5)
        self.assertIn(f"is in use by process {self.server.process.pid} (basalt", refused.stderr)
        self.assertIn(f"which serves it at {url}; connect to that URL", refused.stderr)
        done = subprocess.run([PROGRAM, "put", url, "key", "value"], timeout=60, check=False)
        self.assertEqual(done.returncode, 0)

    def test_the_url_is_gone_after_the_server(self):
        self.assertIn("url redis://", self.lock_file())
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(self.lock_file(), "")
        self.assertEqual(self.put().returncode, 0)

    def test_the_url_of_a_server_that_was_killed_is_not_believed(self):
        self.server.kill()
        self.assertIn("url redis://", self.lock_file())
        self.assertEqual(self.put().returncode, 0)
        self.assertEqual(self.lock_file(), "")

    def test_a_unix_socket_is_named(self):
        self.server.stop()
        path = os.path.join(self.server.home, "only")
        # The socket's path is relative to the directory of the server.
        process = subprocess.Popen([PROGRAM, "serve", self.path, "--no-tcp", "--unix-socket",
                                    "./only"], cwd=self.server.home, stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            self.assertIn(f"which serves it at unix://{path};", self.put().stderr)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
