// A server of files on 127.0.0.1, for tests of what comes from the network. It knows ranges, and can be
// told to hang up in the middle.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace thimble {

class HttpServer {
 public:
  explicit HttpServer(std::map<std::string, std::string> files, bool ranges = true)
      : files_(std::move(files)), ranges_(ranges) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    listen(listener_, 16);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    stopping_ = true;
    thread_.join();
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The next answer ends after so many bytes of the file.
  void hang_up_after(size_t bytes) { cut_ = static_cast<int64_t>(bytes); }
  // First bytes of the ranges that were asked for, 0 of whole files.
  std::vector<size_t> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  void serve() {
    while (!stopping_) {
      pollfd ready = {listener_, POLLIN, 0};
      if (poll(&ready, 1, 20) <= 0) continue;
      const int client = accept(listener_, nullptr, nullptr);
      answer(client);
      close(client);
    }
  }

  void answer(int client) {
    std::string request;
    char block[1024];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t size = read(client, block, sizeof(block));
      if (size <= 0) return;
      request.append(block, static_cast<size_t>(size));
    }
    const size_t slash = request.find('/');
    const auto file = files_.find(request.substr(slash + 1, request.find(' ', slash) - slash - 1));
    if (file == files_.end()) {
      send_all(client, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    const size_t range = request.find("Range: bytes=");
    const size_t from =
        range == std::string::npos || !ranges_ ? 0 : std::stoul(request.substr(range + 13));
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(from);
    }
    const std::string& all = file->second;
    if (from > 0 && from >= all.size()) {
      send_all(client, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    std::string head = from > 0 ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n";
    if (from > 0) {
      head += "Content-Range: bytes " + std::to_string(from) + "-" +
              std::to_string(all.size() - 1) + "/" + std::to_string(all.size()) + "\r\n";
    }
    head +=
        "Content-Length: " + std::to_string(all.size() - from) + "\r\nConnection: close\r\n\r\n";
    const int64_t cut = cut_.exchange(-1);
    send_all(client,
             head + all.substr(from, cut < 0 ? std::string::npos : static_cast<size_t>(cut)));
  }

  static void send_all(int client, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t size = send(client, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (size <= 0) return;
      at += static_cast<size_t>(size);
    }
  }

  const std::map<std::string, std::string> files_;
  const bool ranges_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> cut_ = -1;
  mutable std::mutex mutex_;
  std::vector<size_t> asked_;  // guarded by mutex_
  std::thread thread_;         // last, so that it starts when all is there
};

}  // namespace thimble
