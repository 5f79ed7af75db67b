#include "backend/cuda/ranks/nccl_ranks.h"

#if __has_include(<nccl.h>)
#include <dlfcn.h>
#include <nccl.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace thimble {
namespace {

// The functions of NCCL that are used, found by name.
struct Nccl {
  decltype(&ncclGetUniqueId) get_id;
  decltype(&ncclCommInitRank) init;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclGetErrorString) error_text;
  bool there = false;
};

Nccl load() {
  Nccl nccl = {};
  const char* const wanted = std::getenv("THIMBLE_NCCL");
  if (wanted != nullptr && std::string_view(wanted) == "off") return nccl;
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nccl;
  nccl.there = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    nccl.there = nccl.there && function != nullptr;
  };
  find(nccl.get_id, "ncclGetUniqueId");
  find(nccl.init, "ncclCommInitRank");
  find(nccl.abort, "ncclCommAbort");
  find(nccl.group_start, "ncclGroupStart");
  find(nccl.group_end, "ncclGroupEnd");
  find(nccl.send, "ncclSend");
  find(nccl.receive, "ncclRecv");
  find(nccl.all_gather, "ncclAllGather");
  find(nccl.broadcast, "ncclBroadcast");
  find(nccl.error_text, "ncclGetErrorString");
  return nccl;
}

class NcclRanks final : public Communicator {
 public:
  NcclRanks(const Nccl& nccl, Communicator& ranks, int processes, CudaDevice& device)
      : nccl_(nccl),
        rank_(ranks.rank()),
        size_(ranks.size()),
        stands_for_all_(processes == 1),
        device_(device) {
    ncclUniqueId id = {};
    if (rank_ == 0) check_nccl(nccl_.get_id(&id), "making an id");
    ranks.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    check_nccl(nccl_.init(&comm_, processes, id, rank_), "joining the ranks");
  }
  // Others may be gone already.
  ~NcclRanks() override { nccl_.abort(comm_); }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  std::string_view name() const override { return "nccl"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void exchange(const Pieces& out, const Pieces& in) override {
    check_nccl(nccl_.group_start(), "an exchange");
    for (int d = 1; d < size_; ++d) {
      const int to = (rank_ + d) % size_, from = (rank_ - d + size_) % size_;
      const std::span<std::byte> arrives = in.of(from);
      // A process that stands for all ranks sends to itself what another rank would send.
      send(stands_for_all_ ? out.of(rank_).first(arrives.size()) : out.of(to), to);
      receive(arrives, from);
    }
    check_nccl(nccl_.group_end(), "an exchange");
  }

  void all_gather(const Pieces& all) override {
    const auto own = all.of(rank_);
    const bool equal = all.stride == all.bytes && all.end >= all.stride * size_;
    if (stands_for_all_ || !equal) {
      exchange({own.data(), 0, std::ssize(own)}, all);
      return;
    }
    check_nccl(nccl_.all_gather(own.data(), all.first, own.size(), ncclChar, comm_, device_.stream),
               "gathering");
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    check_nccl(nccl_.broadcast(bytes.data(), bytes.data(), bytes.size(), ncclChar, place_of(root),
                               comm_, device_.stream),
               "a broadcast");
  }

 private:
  void check_nccl(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    throw DeviceError(fmt::format("NCCL failed at {}: {}; another rank may have ended", what,
                                  nccl_.error_text(result)));
  }
  // NCCL's number of the process that a rank is.
  int place_of(int rank) const { return stands_for_all_ ? 0 : rank; }
  void send(std::span<std::byte> piece, int to) {
    if (piece.empty()) return;
    check_nccl(
        nccl_.send(piece.data(), piece.size(), ncclChar, place_of(to), comm_, device_.stream),
        "sending");
  }
  void receive(std::span<std::byte> piece, int from) {
    if (piece.empty()) return;
    check_nccl(
        nccl_.receive(piece.data(), piece.size(), ncclChar, place_of(from), comm_, device_.stream),
        "receiving");
  }

  const Nccl nccl_;
  const int rank_, size_;
  const bool stands_for_all_;
  CudaDevice& device_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_ranks(Communicator& ranks, int processes,
                                              CudaDevice& device) {
  const Nccl nccl = load();
  std::vector<char> there(static_cast<size_t>(ranks.size()));
  there[static_cast<size_t>(ranks.rank())] = nccl.there ? 1 : 0;
  ranks.all_gather({reinterpret_cast<std::byte*>(there.data()), 1, 1});
  if (std::ranges::find(there, 0) != there.end()) return nullptr;
  return std::make_unique<NcclRanks>(nccl, ranks, processes, device);
}

}  // namespace thimble

#else

namespace thimble {

std::unique_ptr<Communicator> make_nccl_ranks(Communicator&, int, CudaDevice&) { return nullptr; }

}  // namespace thimble

#endif
