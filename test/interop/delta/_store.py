"""A SeaweedFS on loopback, as an S3 store."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from _service import free_port

KEY, SECRET = "interop-key", "interop-secret"


def ports() -> list[int]:
    """The store's parts also listen 10,000 above the ports they are given."""
    found: list[int] = []
    while len(found) < 4:
        port = free_port()
        if port < 50_000 and port not in found:
            found.append(port)
    return found


@contextlib.contextmanager
def store(folder: Path):
    """Yields the environment of a client of a running store with the buckets `plain` and `versioned`."""
    master, volume, filer, s3 = ports()
    folder.mkdir(parents=True)
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "interop", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    (folder / "data").mkdir()
    weed = Path(sys.executable).parent / "weed"
    command = [weed, "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-master.port={master}", f"-volume.port={volume}", "-filer", f"-filer.port={filer}"]
    command += ["-s3", f"-s3.port={s3}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={folder / 's3.json'}", "-volume.max=200", "-master.volumeSizeLimitMB=64"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            endpoint = f"http://127.0.0.1:{s3}"
            environment = {
                "AWS_ENDPOINT_URL_S3": endpoint,
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            }
            wait_for(endpoint)
            make_buckets(environment)
            yield environment
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(endpoint: str) -> None:
    for _ in range(120):
        try:
            urllib.request.urlopen(endpoint, timeout=2)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the store does not answer")


BUCKETS = """
import { S3Client, CreateBucketCommand, PutBucketVersioningCommand } from '@aws-sdk/client-s3';
const client = new S3Client({ endpoint: process.env.AWS_ENDPOINT_URL_S3, forcePathStyle: true });
for (const Bucket of ['plain', 'versioned']) {
  for (let tries = 0; ; tries++) {
    try {
      await client.send(new CreateBucketCommand({ Bucket }));
      break;
    } catch (error) {
      if (tries > 20) throw error;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}
const VersioningConfiguration = { Status: 'Enabled' };
await client.send(new PutBucketVersioningCommand({ Bucket: 'versioned', VersioningConfiguration }));
"""

OBJECTS = """
import { S3Client, ListObjectVersionsCommand, GetObjectCommand } from '@aws-sdk/client-s3';
const client = new S3Client({ endpoint: process.env.AWS_ENDPOINT_URL_S3, forcePathStyle: true });
const [Bucket, text] = process.argv.slice(-2);
let [objects, found, marker] = [0, [], {}];
while (marker) {
  const page = await client.send(new ListObjectVersionsCommand({ Bucket, ...marker }));
  for (const { Key, VersionId } of page.Versions ?? []) {
    objects++;
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, ...(VersionId && { VersionId }) }));
    if (Buffer.from(await Body.transformToByteArray()).includes(text) || Key.includes(text)) found.push(Key);
  }
  marker = page.IsTruncated ? { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker } : undefined;
}
console.log(JSON.stringify({ objects, found }));
"""


def node(script: str, environment: dict[str, str], *arguments: str) -> str:
    """Runs a module with the program's own packages at hand."""
    root = Path(os.environ["ELT_PROGRAM"]).parents[2]
    command = ["node", "--no-warnings", "--input-type=module", "-e", script, "--", *arguments]
    done = subprocess.run(command, cwd=root, env=os.environ | environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_buckets(environment: dict[str, str]) -> None:
    node(BUCKETS, environment)


def objects_with(text: str, bucket: str, environment: dict[str, str]) -> dict:
    """How many versions of objects a bucket has, and the names of those that hold a text."""
    return json.loads(node(OBJECTS, environment, bucket, text))
