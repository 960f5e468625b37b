"""What a strict provider of the Anthropic Messages format refuses, checked on every request that
scripts/fake_provider.py receives. Knows nothing of norma."""
import json
import re


def count_key(value, key):
    if isinstance(value, dict):
        return (key in value) + sum(count_key(child, key) for child in value.values())
    if isinstance(value, list):
        return sum(count_key(child, key) for child in value)
    return 0


def tool_faults(tools):
    names = [tool.get("name") for tool in tools]
    for name in sorted({name for name in names if names.count(name) > 1}, key=str):
        yield f"tools: {name!r} is offered {names.count(name)} times"
    for tool in tools:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", str(tool.get("name"))):
            yield f"tools: illegal name {tool.get('name')!r}"
        if tool.get("input_schema", {}).get("type") != "object":
            yield f"tools: input_schema of {tool.get('name')!r} is not of type object"


def block_faults(where, role, block):
    kind = block.get("type")
    if kind not in ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image"):
        yield f"{where}: unknown block type {kind!r}"
    if kind == "text" and not str(block.get("text", "")).strip():
        yield f"{where}: text block is blank"
    if kind == "thinking" and (role != "assistant" or not block.get("signature")):
        yield f"{where}: thinking without signature or outside an assistant message"
    if kind == "tool_result" and role != "user":
        yield f"{where}: tool_result outside a user message"
    if kind == "tool_result" and isinstance(block.get("content"), list):
        for part in block["content"]:
            if part.get("type") == "text" and not part.get("text"):
                yield f"{where}: empty text inside a tool_result"
    if kind == "tool_use":
        if role != "assistant":
            yield f"{where}: tool_use outside an assistant message"
        if not re.fullmatch(r"[A-Za-z0-9_-]+", str(block.get("id"))):
            yield f"{where}: illegal tool_use id {block.get('id')!r}"
        if not isinstance(block.get("input"), dict):
            yield f"{where}: tool_use input is no object"


def message_faults(messages):
    before, waiting, seen = None, [], set()
    for i, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        where = f"messages[{i}]"
        if role not in ("user", "assistant"):
            yield f"{where}: role {role!r}"
        if role == before:
            yield f"{where}: two {role} messages in a row"
        before = role
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if not blocks:
            yield f"{where}: no content"
        for k, block in enumerate(blocks):
            yield from block_faults(f"{where}[{k}]", role, block)
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if role == "user":
            if sorted(map(str, results)) != sorted(map(str, waiting)):
                yield f"{where}: results for {results}, but the calls before are {waiting}"
            kinds = [block.get("type") == "tool_result" for block in blocks]
            if kinds != sorted(kinds, reverse=True):
                yield f"{where}: tool_result blocks do not come first"
            waiting = []
        else:
            waiting = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
            for call in waiting:
                if call in seen:
                    yield f"{where}: tool_use id {call!r} was used before"
                seen.add(call)
    if waiting:
        yield f"the last calls {waiting} have no results"


def protocol_faults(raw):
    """Everything in this request body that a strict provider refuses; [] is good."""
    try:
        body = json.loads(raw.decode("utf-8"))
        json.dumps(body, ensure_ascii=False).encode("utf-8")  # fails on a lone surrogate
    except ValueError as error:
        return [f"the body is no JSON in valid UTF-8: {error}"]
    if not isinstance(body, dict):
        return ["the body is no object"]
    faults = []
    if not isinstance(body.get("model"), str) or not body["model"]:
        faults.append(f"model is {body.get('model')!r}")
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        faults.append(f"max_tokens is {body.get('max_tokens')!r}")
    marks = count_key({k: body.get(k) for k in ("system", "messages", "tools")}, "cache_control")
    if marks > 4:
        faults.append(f"{marks} cache_control marks, 4 are allowed")
    for k, block in enumerate(body["system"] if isinstance(body.get("system"), list) else []):
        if not str(block.get("text", "")).strip():
            faults.append(f"system[{k}]: text block is blank")
    faults += tool_faults(body.get("tools", []))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return faults + ["messages is missing or empty"]
    faults += message_faults(messages)
    if messages[0].get("role") != "user":
        faults.append("the first message is not the user's")
    if messages[-1].get("role") == "assistant":
        faults.append("the conversation ends with the assistant")
    return faults
