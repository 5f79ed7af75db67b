#include "backend/cuda/ranks/staged_ranks.h"

#include <unistd.h>

#include <cstdio>
#include <deque>
#include <functional>

#include "base/error.h"

namespace thimble {
namespace {

// Copies to the host, a function of the host that talks to the other processes, and copies back: all of it
// in the stream's order, so that it can be recorded and replayed.
class StagedRanks final : public Communicator {
 public:
  StagedRanks(Communicator& ranks, CudaDevice& device) : ranks_(ranks), device_(device) {
    check(cudaMallocHost(&host_, kRoom), "memory to talk to other ranks through");
  }
  ~StagedRanks() override { cudaFreeHost(host_); }
  StagedRanks(const StagedRanks&) = delete;
  StagedRanks& operator=(const StagedRanks&) = delete;

  std::string_view name() const override { return "mpi, through the host"; }
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  double seconds() const override { return ranks_.seconds(); }

  void exchange(const Pieces& out, const Pieces& in) override {
    for_slices(std::max(out.bytes, in.bytes), 2, [&](int64_t at, int64_t bytes, std::byte* room) {
      const Pieces from = slice(out, at, bytes), to = slice(in, at, bytes);
      const Pieces sent = staged(from, room, bytes);
      const Pieces arrived = staged(to, room + bytes * size(), bytes);
      for (int k = 0; k < size(); ++k) {
        if (k != rank()) copy(from.of(k), sent.of(k), cudaMemcpyDeviceToHost);
      }
      on_host([this, sent, arrived] { ranks_.exchange(sent, arrived); });
      for (int k = 0; k < size(); ++k) {
        if (k != rank()) copy(arrived.of(k), to.of(k), cudaMemcpyHostToDevice);
      }
    });
  }

  void all_gather(const Pieces& all) override {
    for_slices(all.bytes, 1, [&](int64_t at, int64_t bytes, std::byte* room) {
      const Pieces here = slice(all, at, bytes);
      const Pieces there = staged(here, room, bytes);
      copy(here.of(rank()), there.of(rank()), cudaMemcpyDeviceToHost);
      on_host([this, there] { ranks_.all_gather(there); });
      for (int k = 0; k < size(); ++k) {
        if (k != rank()) copy(there.of(k), here.of(k), cudaMemcpyHostToDevice);
      }
    });
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    for_slices(std::ssize(bytes), 1, [&](int64_t at, int64_t count, std::byte* room) {
      const auto part = bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(count));
      const std::span<std::byte> there(room, part.size());
      if (root == rank()) copy(part, there, cudaMemcpyDeviceToHost);
      on_host([this, there, root] { ranks_.broadcast(there, root); });
      if (root != rank()) copy(there, part, cudaMemcpyHostToDevice);
    });
  }

 private:
  static constexpr int64_t kRoom = 8 << 20;

  // Pieces of pieces, so that all ranks' fit into the room: body(at, bytes, room).
  template <class Body>
  void for_slices(int64_t bytes, int rooms, const Body& body) {
    const int64_t most = std::max<int64_t>(64, kRoom / (rooms * size()) / 64 * 64);
    internal_check(most * rooms * size() <= kRoom, "more ranks than there is room for");
    for (int64_t at = 0; at < bytes; at += most) {
      body(at, std::min(most, bytes - at), static_cast<std::byte*>(host_));
    }
  }

  static Pieces slice(const Pieces& all, int64_t at, int64_t bytes) {
    const int64_t left = std::clamp<int64_t>(all.bytes - at, 0, bytes);
    return {all.first + at, all.stride, left, all.end - at};
  }
  // As many bytes of every rank, in the room. Its pieces are cut off where those of `like` are.
  static Pieces staged(const Pieces& like, std::byte* room, int64_t bytes) {
    Pieces result = {room, bytes, like.bytes};
    if (like.stride > 0 && like.end < std::numeric_limits<int64_t>::max() / 2) {
      const int64_t whole = std::max<int64_t>(0, like.end / like.stride);
      result.end = whole * bytes + std::clamp<int64_t>(like.end - whole * like.stride, 0, bytes);
    }
    return result;
  }

  void copy(std::span<std::byte> from, std::span<std::byte> to, cudaMemcpyKind kind) {
    if (from.empty()) return;
    check(cudaMemcpyAsync(to.data(), from.data(), from.size(), kind, device_.stream),
          "copying for other ranks");
  }

  // Recordings call it again and again: it stays.
  void on_host(std::function<void()> call) {
    calls_.push_back(std::move(call));
    const auto run = [](void* what) {
      try {
        (*static_cast<std::function<void()>*>(what))();
      } catch (const std::exception& error) {  // nobody above it can catch
        std::fprintf(stderr, "thimble: %s\n", error.what());
        ::_exit(2);
      }
    };
    check(cudaLaunchHostFunc(device_.stream, run, &calls_.back()), "talking to other ranks");
  }

  Communicator& ranks_;
  CudaDevice& device_;
  void* host_ = nullptr;
  std::deque<std::function<void()>> calls_;
};

}  // namespace

std::unique_ptr<Communicator> make_staged_ranks(Communicator& ranks, CudaDevice& device) {
  return std::make_unique<StagedRanks>(ranks, device);
}

}  // namespace thimble
