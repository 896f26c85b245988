import { generateKeyPairSync, sign } from 'node:crypto';

/** A key and a certificate that nobody signed, made on the spot: what a client must refuse. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const algorithm = der(0x30, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const name = der(0x30, der(0x31, der(0x30, der(0x06, Buffer.from('550403', 'hex')), der(0x0c, 'loopback'))));
  const validity = der(0x30, der(0x17, '200101000000Z'), der(0x17, '491231235959Z'));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const body = der(0x30, der(0x02, Buffer.from([1])), algorithm, name, validity, name, spki);
  const signature = sign('sha256', body, privateKey);
  const cert = der(0x30, body, algorithm, der(0x03, Buffer.from([0]), signature));
  const lines = cert.toString('base64').replace(/.{64}/g, '$&\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
