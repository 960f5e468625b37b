#!/usr/bin/env python3
"""A loopback model server in the Anthropic format that plays a scenario and tolerates no protocol fault.

    scripts/fake_provider.py SCENARIO [--port N] [--port-file FILE] [--log FILE] [--lenient] [--tls CERT KEY]
    scripts/fake_provider.py --list

SCENARIO is a built-in name (--list) or a JSON file {"replies": [REPLY, ...]}; the last reply repeats.
A REPLY is the model's answer with, as wanted, one misbehaviour:

    {"text": "...", "thinking": "...", "calls": [{"name": "Bash", "input": {}, "id": "...", "raw": "..."}],
     "usage": {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0}, "stop": "end_turn"}
    {"status": 529, "message": "...", "headers": {"retry-after": "1"}}      an error answer
    {"body": "...", "content_type": "text/html", "status": 200}             these bytes, whatever they mean
    + "delay_ms": before the first byte, "gap_ms": before each frame, "chunk": send in pieces of N bytes
    + "fault": see FAULTS, with "frames": how many frames of the answer go out first

Every request is checked for what a strict provider refuses (provider_rules.py) and answered 400 when it
breaks a rule; --log appends one JSON line a request. Standard library only; scripts/e2e.py imports it.
It speaks sockets directly, because half of what it must do no HTTP library would agree to send.
"""
import argparse
import gzip
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time

from provider_rules import protocol_faults

REQUEST_BYTES_MAX = 64 << 20
STALL_SECONDS_MAX = 120

# ------------------------------------------------------------------------------------------ frames


def event(kind, **fields):
    body = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {body}\n\n".encode()


def pieces(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def blocks_of(reply, n):
    """(content_block at its start, deltas, content_block when whole) of each block, in order."""
    out = []
    if reply.get("thinking"):
        text, mark = reply["thinking"], f"c2ln+/{n}="
        deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(text, 48)]
        deltas.append({"type": "signature_delta", "signature": mark})
        out.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas,
                    {"type": "thinking", "thinking": text, "signature": mark}))
    if reply.get("text") is not None:
        text = reply["text"]
        size = max(48, len(text) // 2000)  # a long text in bigger pieces: 2,000 frames are enough
        out.append(({"type": "text", "text": ""},
                    [{"type": "text_delta", "text": part} for part in pieces(text, size)],
                    {"type": "text", "text": text}))
    for k, call in enumerate(reply.get("calls", [])):
        raw = call.get("raw", json.dumps(call.get("input", {}), ensure_ascii=False))
        head = {"type": "tool_use", "id": call.get("id", f"toolu_{n}_{k}"), "name": call["name"]}
        out.append(({**head, "input": {}},
                    [{"type": "input_json_delta", "partial_json": part} for part in pieces(raw, 32)],
                    {**head, "input": call.get("input", {})}))
    return out


def usage_of(reply):
    return {"input": 100, "output": 20, "cache_read": 0, "cache_write": 0, **reply.get("usage", {})}


def stop_of(reply):
    return reply.get("stop") or ("tool_use" if reply.get("calls") else "end_turn")


def frames_of(reply, n):
    """The answer as a list of SSE frames, the way the real service cuts it."""
    usage = usage_of(reply)
    frames = [event("message_start", message={
        "id": f"msg_{n}", "type": "message", "role": "assistant", "model": "fake-model", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": usage["input"], "output_tokens": 1,
                  "cache_read_input_tokens": usage["cache_read"],
                  "cache_creation_input_tokens": usage["cache_write"]}}), event("ping")]
    for index, (start, deltas, _) in enumerate(blocks_of(reply, n)):
        frames.append(event("content_block_start", index=index, content_block=start))
        frames += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        frames.append(event("content_block_stop", index=index))
    frames.append(event("message_delta", delta={"stop_reason": stop_of(reply), "stop_sequence": None},
                        usage={"output_tokens": usage["output"]}))
    frames.append(event("message_stop"))
    return frames


def whole_of(reply, n):
    """The same answer for a request with "stream": false."""
    usage = usage_of(reply)
    return json.dumps({
        "id": f"msg_{n}", "type": "message", "role": "assistant", "model": "fake-model",
        "content": [whole for _, _, whole in blocks_of(reply, n)], "stop_reason": stop_of(reply),
        "usage": {"input_tokens": usage["input"], "output_tokens": usage["output"],
                  "cache_read_input_tokens": usage["cache_read"],
                  "cache_creation_input_tokens": usage["cache_write"]}}).encode()


# ------------------------------------------------------------------------------------ misbehaviour


class Gone(Exception):
    """The connection is to be closed."""


class Connection:
    """One accepted socket: reads requests, sends answers, forgets politeness where asked to."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def read_request(self):
        """(method, path, headers, body) or None at a clean end."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.fill():
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        if size > REQUEST_BYTES_MAX:
            raise Gone
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        while len(self.buffer) < size:
            if not self.fill():
                raise Gone
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return method, path, headers, body

    def fill(self):
        part = self.sock.recv(1 << 16)
        self.buffer += part
        return part

    def send(self, data):
        self.sock.sendall(data)

    def head(self, status=200, content_type="text/event-stream", length=None, headers=None):
        lines = [f"HTTP/1.1 {status} Fake", "request-id: req_fake"]
        if content_type:
            lines.append(f"content-type: {content_type}")
        if length is not None:
            lines.append(f"content-length: {length}")
        else:
            lines.append("connection: close")
        lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")

    def answer(self, body, status=200, content_type="text/event-stream", headers=None):
        if status == 204:
            self.head(status, None, None, headers)
            raise Gone
        self.head(status, content_type, len(body), headers)
        self.send(body)

    def error(self, status, message, kind="api_error", headers=None):
        body = {"type": "error", "error": {"type": kind, "message": message}}
        self.answer(json.dumps(body).encode(), status, "application/json", headers)

    def reset(self):
        """Ends the connection with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone

    def wait_until_gone(self, beat=b"", gap=0.2):
        """Says nothing (or `beat` every gap) until the client hangs up; bounded."""
        end = time.monotonic() + STALL_SECONDS_MAX
        self.sock.settimeout(gap)
        while time.monotonic() < end:
            try:
                if not self.sock.recv(1):
                    break
            except (socket.timeout, ssl.SSLWantReadError):
                if beat:
                    self.send(beat)
        raise Gone


def opened(connection, reply, n, default=3):
    """Sends the head and the first frames of the answer."""
    connection.head()
    connection.send(b"".join(frames_of(reply, n)[:reply.get("frames", default)]))


def fault_cut(connection, reply, n):
    opened(connection, reply, n)
    raise Gone


def fault_cut_reset(connection, reply, n):
    opened(connection, reply, n)
    time.sleep(0.05)  # let the frames arrive: a reset discards what the peer has not read
    connection.reset()


def fault_stall(connection, reply, n):
    opened(connection, reply, n)
    connection.wait_until_gone()


def fault_beat(connection, reply, n):
    opened(connection, reply, n)
    connection.wait_until_gone(reply.get("beat", ": keep-alive\n\n").encode())


def fault_silent(connection, reply, n):
    connection.wait_until_gone()


def fault_reset(connection, reply, n):
    connection.reset()


def fault_hang_up(connection, reply, n):
    raise Gone


def fault_no_http(connection, reply, n):
    connection.send(b"220 mail.example.com ESMTP ready\r\n\r\n")
    raise Gone


def fault_short(connection, reply, n):
    body = b"".join(frames_of(reply, n))
    connection.head(length=len(body) + 1000)
    connection.send(body[:len(body) // 2])
    raise Gone


def fault_chunked_cut(connection, reply, n):
    connection.head(headers={"transfer-encoding": "chunked"})
    for frame in frames_of(reply, n)[:reply.get("frames", 3)]:
        connection.send(b"%x\r\n%b\r\n" % (len(frame), frame))
    raise Gone


def fault_gzip(connection, reply, n):
    body = gzip.compress(b"".join(frames_of(reply, n)))
    connection.answer(body, headers={"content-encoding": "gzip"})


def fault_gzip_lie(connection, reply, n):
    connection.answer(b"".join(frames_of(reply, n)), headers={"content-encoding": "gzip"})


def fault_redirect(connection, reply, n):
    connection.answer(b"", 307, None, {"location": "/elsewhere/v1/messages"})


def fault_error_event(connection, reply, n):
    frames = frames_of(reply, n)[:reply.get("frames", 3)]
    error = {"type": reply.get("error_type", "overloaded_error"), "message": "overloaded mid-stream"}
    connection.answer(b"".join(frames) + event("error", error=error))


def fault_garbage(connection, reply, n):
    connection.answer(b"data: {\"type\": \"message_sta\n\ndata: ]][[\n\ndata: \xff\xfe\x00\n\n")


def fault_long_line(connection, reply, n):
    connection.head()
    for _ in range(reply.get("megabytes", 64)):
        connection.send(b"x" * (1 << 20))
    raise Gone


FAULTS = {name[6:]: act for name, act in sorted(globals().items()) if name.startswith("fault_")}


def play(connection, reply, n, streamed):
    """Sends one reply of the scenario."""
    time.sleep(reply.get("delay_ms", 0) / 1000)
    if "fault" in reply:
        return FAULTS[reply["fault"]](connection, {"text": "never seen whole", **reply}, n)
    if "body" in reply:
        return connection.answer(reply["body"].encode("utf-8", "surrogateescape"), reply.get("status", 200),
                                 reply.get("content_type", "text/event-stream"), reply.get("headers"))
    if "status" in reply:
        return connection.error(reply["status"], reply.get("message", f"status {reply['status']}"),
                                reply.get("kind", "api_error"), reply.get("headers"))
    if not streamed:
        return connection.answer(whole_of(reply, n), content_type="application/json")
    frames = frames_of(reply, n)
    if "chunk" in reply or "gap_ms" in reply:
        body = b"".join(frames)
        connection.head(length=len(body), headers=reply.get("headers"))
        for part in pieces(body, reply["chunk"]) if "chunk" in reply else frames:
            time.sleep(reply.get("gap_ms", 0) / 1000)
            connection.send(part)
        return None
    return connection.answer(b"".join(frames), headers=reply.get("headers"))


# ------------------------------------------------------------------------------------------ server


class Provider:
    """with Provider([reply, ...]) as p: p.url, p.requests, p.faults, p.until(n)."""

    def __init__(self, replies, strict=True, port=0, log=None, tls=None):
        self.replies, self.strict, self.log = replies, strict, log
        self.requests, self.faults = [], []
        self.arrived = threading.Condition()
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *ignored):
        # shutdown wakes the accept() of the other thread, close alone does not.
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            connection = Connection(sock)
            while (request := connection.read_request()) is not None:
                self.respond(connection, *request)
                if "connection: close" in request[2].get("connection", "").lower():
                    break
        except (Gone, OSError, ValueError):
            pass  # a client that goes away, or a TLS handshake it refused, is everyday life here
        finally:
            sock.close()

    def respond(self, connection, method, path, headers, body):
        wrong = protocol_faults(body) if self.strict else []
        if self.strict and not path.endswith("/v1/messages"):
            wrong = [f"{method} {path} is no endpoint of this service"]
        elif self.strict and headers.get("anthropic-version") != "2023-06-01":
            wrong.append("header anthropic-version is missing or unknown")
        with self.arrived:
            n = len(self.requests)
            self.requests.append({"n": n, "t": time.time(), "method": method, "path": path,
                                  "headers": headers, "bytes": len(body), "raw": body})
            self.faults += [f"request {n}: {fault}" for fault in wrong]
            if self.log:
                self.log.write(json.dumps({**self.requests[-1], "raw": body.decode("utf-8", "replace"),
                                           "faults": wrong}) + "\n")
                self.log.flush()
            self.arrived.notify_all()
        if wrong:
            return connection.error(400, "; ".join(wrong), "invalid_request_error")
        streamed = b'"stream":false' not in body.replace(b" ", b"")
        return play(connection, self.replies[min(n, len(self.replies) - 1)], n, streamed)

    def until(self, count, seconds=20):
        """Waits until `count` requests have arrived; False when they did not come in time."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.requests) >= count, seconds)

    def body(self, n=-1):
        return json.loads(self.requests[n]["raw"])

    def results(self, n=-1):
        """[(call id, text, is_error)] of the tool results in the newest message of request n."""
        out = []
        for block in self.body(n)["messages"][-1]["content"]:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                content = block.get("content", "")
                text = content if isinstance(content, str) else "".join(p.get("text", "") for p in content)
                out.append((block["tool_use_id"], text, bool(block.get("is_error"))))
        return out


SCENARIOS = {
    "text": [{"text": "Hello from the fake provider."}],
    "tools": [{"text": "I will look.", "calls": [{"name": "LS", "input": {"path": "."}},
                                                 {"name": "Bash", "input": {"command": "uname -s"}}]},
              {"text": "Done."}],
    "thinking": [{"thinking": "Let me see.", "calls": [{"name": "LS", "input": {"path": "."}}]},
                 {"thinking": "I saw.", "text": "Done."}],
    "loop": [{"calls": [{"name": "LS", "input": {"path": "."}}]}],
    "retry": [{"status": 529, "message": "overloaded"}, {"text": "Second try."}],
    "slow": [{"text": "Slowly, piece by piece. " * 20, "gap_ms": 200}],
    **{f"status-{code}": [{"status": code}] for code in (400, 401, 403, 404, 413, 429, 500, 503, 529)},
    "retry-after": [{"status": 429, "headers": {"retry-after": "9000"}}],
    "html": [{"body": "<html><body>Sign in</body></html>", "content_type": "text/html"}],
    "no-content": [{"body": "", "status": 204}],
    "empty": [{"body": ""}],
    **{name.replace("_", "-"): [{"fault": name}] for name in FAULTS},
}


def main():
    parser = argparse.ArgumentParser(description="a loopback model server in the Anthropic format")
    parser.add_argument("scenario", nargs="?", help="a built-in name or a JSON file")
    parser.add_argument("--list", action="store_true", help="print the built-in scenarios")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--port-file", help="write the port there once it listens")
    parser.add_argument("--log", help="append one JSON line a request")
    parser.add_argument("--lenient", action="store_true", help="do not check requests")
    parser.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    arguments = parser.parse_args()
    if arguments.list or not arguments.scenario:
        print("\n".join(sorted(SCENARIOS)))
        return 0 if arguments.list else 2
    replies = SCENARIOS.get(arguments.scenario)
    if replies is None:
        if not os.path.exists(arguments.scenario):
            print(f"no scenario and no file named {arguments.scenario!r}; see --list", file=sys.stderr)
            return 2
        with open(arguments.scenario, encoding="utf-8") as file:
            replies = json.load(file)["replies"]
    log = open(arguments.log, "a", encoding="utf-8") if arguments.log else None
    with Provider(replies, not arguments.lenient, arguments.port, log, arguments.tls) as provider:
        if arguments.port_file:
            with open(arguments.port_file + ".new", "w", encoding="utf-8") as file:
                file.write(str(provider.port))
            os.replace(arguments.port_file + ".new", arguments.port_file)
        print(f"fake provider: {provider.url}", file=sys.stderr)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        print(f"fake provider: {len(provider.requests)} requests, {len(provider.faults)} faults",
              file=sys.stderr)
        return 1 if provider.faults else 0


if __name__ == "__main__":
    sys.exit(main())
