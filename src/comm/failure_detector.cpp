#include "comm/failure_detector.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <sstream>

#include "comm/small_collectives.h"

namespace thimble {
namespace {

constexpr int kExitCode = 2;
constexpr auto kPatience = std::chrono::seconds(10);  // for connections
constexpr char kWell = 'B', kEnds = 'E';

std::string host_name() {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

// Addresses that other machines may reach this one at.
std::string addresses() {
  std::string all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    if (std::string_view(text.data()).starts_with("127.")) continue;
    all += fmt::format(" {}", text.data());
  }
  ::freeifaddrs(list);
  return all;
}

bool wait_for(int file, short events, std::chrono::milliseconds time) {
  pollfd waiting = {file, events, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
}

// A machine that is lost says nothing: it is asked every second, and given up after some.
void keep_asking(int socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 6000);
}

FileDescriptor connection_to(const std::string& address, uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (socket.get() < 0 || ::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) return {};
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    int fault = 0;
    socklen_t size = sizeof fault;
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, std::chrono::seconds(2)))
      return {};
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
    if (fault != 0) return {};
  }
  return socket;
}

// As much as the other side takes at once: words are few.
void send_text(int socket, const std::string& text) {
  if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
}

void say(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

struct Hello {
  uint64_t key;
  int32_t rank;
};

}  // namespace

FailureDetector::FailureDetector(Communicator& ranks)
    : rank_(ranks.rank()),
      who_(gathered(ranks, fmt::format("process {} on {}", ::getpid(), host_name()))),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  connect(ranks);
  connected_ = !any_rank(ranks, !connected_);
  if (connected_) thread_ = std::thread([this] { watch(); });
}

FailureDetector::~FailureDetector() {
  if (connected_ && !ending_) {
    for (const Line& line : lines_) send_text(line.socket.get(), std::string(1, kWell));
  }
  ending_ = true;
  const uint64_t one = 1;
  if (thread_.joinable() && ::write(wake_.get(), &one, sizeof one) == sizeof one) thread_.join();
  if (thread_.joinable()) thread_.detach();
}

void FailureDetector::connect(Communicator& ranks) {
  FileDescriptor listener;
  uint64_t key = 0;
  std::string place;
  if (rank_ == 0) {
    listener = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    socklen_t size = sizeof at;
    const bool listens =
        listener.get() >= 0 &&
        ::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 &&
        ::listen(listener.get(), ranks.size()) == 0 &&
        ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0;
    std::random_device device;
    key = (uint64_t{device()} << 32) | device();
    place =
        fmt::format("{} {} {}{}", listens ? ntohs(at.sin_port) : 0, key, host_name(), addresses());
  }
  place = text_of_first(ranks, place);
  if (rank_ == 0) {
    accept_all(listener.get(), key, ranks.size() - 1);
  } else {
    call_first(place);
  }
}

void FailureDetector::accept_all(int listener, uint64_t key, int count) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::ssize(lines_) < count) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !wait_for(listener, POLLIN, left)) return;
    FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello = {};
    const bool ours = socket.get() >= 0 && wait_for(socket.get(), POLLIN, left) &&
                      ::recv(socket.get(), &hello, sizeof hello, MSG_WAITALL) == sizeof hello &&
                      hello.key == key;
    if (!ours) continue;  // whoever that was
    keep_asking(socket.get());
    lines_.push_back({std::move(socket), hello.rank});
  }
  connected_ = true;
}

void FailureDetector::call_first(const std::string& place) {
  std::istringstream words(place);
  uint16_t port = 0;
  uint64_t key = 0;
  std::string host, address;
  words >> port >> key >> host;
  std::vector<std::string> known;
  if (host == host_name()) known.push_back("127.0.0.1");
  while (words >> address) known.push_back(address);
  for (const std::string& at : known) {
    FileDescriptor socket = port == 0 ? FileDescriptor() : connection_to(at, port);
    if (socket.get() < 0) continue;
    const Hello hello = {key, rank_};
    keep_asking(socket.get());
    if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) continue;
    lines_.push_back({std::move(socket), 0});
    connected_ = true;
    return;
  }
}

void FailureDetector::set_remedy(std::string sentence) {
  const std::lock_guard lock(mutex_);
  remedy_ = "; " + std::move(sentence);
}

void FailureDetector::tell(const std::string& words, int but_not) {
  for (const Line& line : lines_) {
    if (line.rank != but_not) send_text(line.socket.get(), kEnds + words + '\n');
  }
}

bool FailureDetector::report_failure(const std::string& sentence) {
  ending_ = true;
  if (!connected_) return true;
  tell(sentence, -1);
  if (rank_ == 0) return true;
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {  // ranks that fail alike do so at about the same time
    {
      const std::lock_guard lock(mutex_);
      if (!said_by_first_.empty()) return said_by_first_ != sentence;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

void FailureDetector::end(int rank, const std::string& words) {
  std::string remedy;
  {
    const std::lock_guard lock(mutex_);
    remedy = remedy_;
  }
  tell(words, rank);
  say(fmt::format("\nthimble: rank {} ends: {}{}\n", rank_, words, remedy));
  ::_exit(kExitCode);
}

bool FailureDetector::listen(Line& line) {
  std::array<char, 1024> text;
  const ssize_t size = ::recv(line.socket.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (size > 0) line.heard.append(text.data(), static_cast<size_t>(size));
  if (line.heard.starts_with(kWell)) line.well = true;
  const size_t stop = line.heard.find('\n');
  return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR) || stop != std::string::npos;
}

void FailureDetector::watch() {
  std::vector<pollfd> waiting;
  for (;;) {
    waiting.assign(1, {wake_.get(), POLLIN, 0});
    for (const Line& line : lines_) {
      waiting.push_back({line.well ? -1 : line.socket.get(), POLLIN, 0});
    }
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[0].revents != 0) return;
    for (size_t i = 0; i < lines_.size(); ++i) {
      Line& line = lines_[i];
      if (waiting[i + 1].revents == 0 || !listen(line) || line.well) continue;
      const std::string& who = who_[static_cast<size_t>(line.rank)];
      std::string words = line.heard.starts_with(kEnds)
                              ? line.heard.substr(1, line.heard.find('\n') - 1)
                              : fmt::format("rank {} ({}) is gone", line.rank, who);
      if (rank_ != 0) {
        const std::lock_guard lock(mutex_);
        said_by_first_ = words;
      }
      // Where this rank fails alike, it says so itself.
      for (int tries = 0; tries < 6 && !ending_; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      if (ending_) return;
      if (line.heard.starts_with(kEnds) && rank_ == 0) {
        words = fmt::format("rank {} ({}): {}", line.rank, who, words);
      }
      end(line.rank, words);
    }
  }
}

}  // namespace thimble
