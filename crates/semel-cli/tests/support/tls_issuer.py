"""An issuer whose keys are behind TLS, with a certificate of its own authority: `PORT=N python tls_issuer.py DIR`.

DIR gets `ca.pem`, the authority, and `token`, a token for `https://shop.example`.
"""

import datetime
import http.server
import json
import os
import pathlib
import ssl
import sys

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

PORT, DIR = int(os.environ["PORT"]), pathlib.Path(sys.argv[1])
ISSUER = f"https://localhost:{PORT}"
NOW = datetime.datetime.now(datetime.timezone.utc)


def name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject, public_key, issuer, issuer_key, ca):
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(hours=1))
        .not_valid_after(NOW + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if not ca:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def written(file, *parts):
    path = DIR / file
    path.write_bytes(b"".join(parts))
    return path


authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
authority = certificate("authority", authority_key.public_key(), "authority", authority_key, ca=True)
server = certificate("localhost", server_key.public_key(), "authority", authority_key, ca=False)
written("ca.pem", authority.public_bytes(serialization.Encoding.PEM))
chain = written("server.pem", pem(server_key), server.public_bytes(serialization.Encoding.PEM))

signing = rsa.generate_private_key(public_exponent=65537, key_size=2048)
seconds = int(NOW.timestamp())
claims = {"iss": ISSUER, "aud": "https://shop.example", "sub": "1", "iat": seconds, "exp": seconds + 600}
written("token", jwt.encode(claims, signing, algorithm="RS256", headers={"kid": "k"}).encode())
key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signing.public_key()))
PAGE = json.dumps({"keys": [{**key, "kid": "k", "use": "sig", "alg": "RS256"}]}).encode()


class Keys(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_):
        pass


httpd = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Keys)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(chain)
httpd.socket = context.wrap_socket(httpd.socket, server_side=True)
httpd.serve_forever()
