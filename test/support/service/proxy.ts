import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A proxy for one test, which answers CONNECT with a status, and where that is 2xx connects to `port`, whichever host is requested. */
export async function startProxy(status: number, port: number) {
  /** The heads of the requests. */
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', (head: Buffer) => {
      requests.push(head.toString('latin1'));
      socket.write(`HTTP/1.1 ${status} Told\r\n\r\n`);
      if (status >= 300) return void socket.end();
      const target = connect(port, '127.0.0.1');
      target.on('error', () => {});
      sockets.add(target);
      socket.pipe(target).pipe(socket);
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return {
    url: `http://kim:se%40cret@127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    requests,
  };
}
