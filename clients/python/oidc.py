"""Deliveries with a bearer token, verified by Google's own library: `python oidc.py HOST:PORT`."""

import sys

import jwt
import requests
from google.api_core.exceptions import InvalidArgument
from google.auth.transport.requests import Request
from google.oauth2 import id_token

from bus import Bus
from handler import Handler, check, refused
from tasks import Program, connect

EMAIL = "worker@shop.iam.gserviceaccount.com"


def bearer(delivery):
    scheme, token = delivery.headers["Authorization"].split(" ")
    check("a bearer token came", scheme, "Bearer")
    return token


def verified(broker, token, audience):
    """Verifies it with the keys in both forms that Google publishes."""
    fetch = Request()
    seen = None
    for form in ("v3", "v1"):
        certs = f"http://{broker}/oauth2/{form}/certs"
        seen = id_token.verify_token(token, fetch, audience=audience, certs_url=certs)
        check(f"{form} keys verify it for {audience}", seen["aud"], audience)
        with refused(f"another audience, with {form} keys", Exception, "udience"):
            id_token.verify_token(token, fetch, audience="https://else.example", certs_url=certs)
    return seen


def discovery(broker):
    document = requests.get(f"http://{broker}/.well-known/openid-configuration", timeout=10).json()
    check("the issuer is the broker", document["issuer"], f"http://{broker}")
    keys = requests.get(document["jwks_uri"], timeout=10).json()["keys"]
    check("its keys are for RS256", {key["alg"] for key in keys}, {"RS256"})
    return document["issuer"]


def of_tasks(broker, issuer):
    program = Program(connect(broker, "grpc"))
    queue, handler = program.queue("tokens"), program.handler
    url = handler.answering("/token") + "?order=A-1"
    oidc = {"service_account_email": EMAIL}
    program.task(queue, url, request={"oidc_token": oidc})
    token = bearer(handler.requests("/token")[0])
    claims = verified(broker, token, url)
    print("ok: without an audience it is the whole URL")
    check("issuer", claims["iss"], issuer)
    check("who", (claims["email"], claims["email_verified"]), (EMAIL, True))
    check("an hour", claims["exp"] - claims["iat"], 3600)
    check("subject", claims["azp"], claims["sub"])
    header = jwt.get_unverified_header(token)
    check("header", (header["alg"], header["typ"], "kid" in header), ("RS256", "JWT", True))

    named = handler.answering("/named")
    oidc = {"service_account_email": EMAIL, "audience": "https://shop.example"}
    own = {"Authorization": "Basic mine"}
    program.task(queue, named, request={"oidc_token": oidc, "headers": own})
    verified(broker, bearer(handler.requests("/named")[0]), "https://shop.example")
    print("ok: the token wins over an own Authorization header")
    program.task(queue, handler.answering("/own"), request={"headers": own})
    seen = handler.requests("/own")[0].headers["Authorization"]
    check("without a token an own header is passed on", seen, "Basic mine")
    with refused("an OAuth token for a host that is not Google's", InvalidArgument):
        program.task(queue, url, request={"oauth_token": {"service_account_email": EMAIL}})


def of_pushes(broker):
    bus, handler = Bus(broker), Handler()
    url = handler.answering("/push")
    config = {"push_endpoint": url, "oidc_token": {"service_account_email": EMAIL}}
    topic, _ = bus.both("push-tokens", push_config=config)
    bus.publish(topic, b"x")
    claims = verified(broker, bearer(handler.requests("/push")[0]), url)
    check("who pushes", claims["email"], EMAIL)


def main():
    broker = sys.argv[1]
    of_tasks(broker, discovery(broker))
    of_pushes(broker)


if __name__ == "__main__":
    main()
