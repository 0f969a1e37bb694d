"""A real SMTP server on a free port, for the tests. Prints its port, then one JSON line a message it accepted.

Arguments are what it answers to the first messages instead of accepting them, for example `451` or `550`.
"""

import asyncio
import email
import json
import sys
from email import policy

from aiosmtpd.smtp import SMTP

refusals = sys.argv[1:]


class Handler:
    async def handle_DATA(self, server, session, envelope):
        if refusals:
            return f"{refusals.pop(0)} not now"
        message = email.message_from_bytes(envelope.content, policy=policy.default)
        print(
            json.dumps(
                {
                    "to": envelope.rcpt_tos,
                    "from": message["from"],
                    "subject": message["subject"],
                    "id": message["message-id"],
                    "auto": message["auto-submitted"],
                    "text": message.get_content(),
                }
            ),
            flush=True,
        )
        return "250 accepted"


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(), hostname="mail.test"), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
