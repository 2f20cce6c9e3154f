import socket
import types
import unittest

from sandglass_harness.broker import traffic


class DrainTest(unittest.TestCase):
    def setUp(self):
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.far.setblocking(False)

    def tearDown(self):
        self.near.close()
        self.far.close()

    def drain(self, take_frames, **bound):
        ends = types.SimpleNamespace(socket=self.near)
        run = types.SimpleNamespace(
            spare=ends, streams=[], killed_for=None, deadline=0, over=False, take_frames=take_frames
        )
        traffic.Traffic(run, None, None, None).drain(**bound)

    def test_pieces_that_carry_descriptors_are_read_one_by_one_and_no_later_frame_is_lost(self):
        pieces, taken = 0, []
        try:
            while pieces < 200:
                socket.send_fds(self.far, [b"x\n"], [self.far.fileno()])
                pieces += 1
        except BlockingIOError:  # the socket buffer is full
            pass
        self.assertGreater(pieces, traffic.REST_SIZE // traffic.READ_SIZE)
        self.far.send(b"the result\n")
        self.drain(lambda data, _now: taken.append(data))
        self.assertEqual(b"".join(taken), b"x\n" * pieces + b"the result\n")

    def test_the_drain_ends_while_a_process_keeps_writing(self):
        amount = 0

        def keep_writing(data, _now):
            nonlocal amount
            amount += len(data)
            try:
                self.far.send(b"y" * traffic.READ_SIZE)
            except BlockingIOError:
                pass

        self.far.send(b"y")
        self.drain(keep_writing)
        self.assertLess(amount, traffic.REST_SIZE + 2 * traffic.READ_SIZE)

    def test_the_drain_reads_few_small_pieces_while_a_process_keeps_writing(self):
        taken = []

        def keep_writing(data, _now):
            taken.append(data)
            self.far.send(b"y")

        self.far.send(b"x" * 1000)
        self.drain(keep_writing, reads=traffic.LIVE_READS)
        self.assertEqual(taken, [b"x" * 1000] + [b"y"] * (traffic.LIVE_READS - 1))


if __name__ == "__main__":
    unittest.main()
