#include "backend/cuda/ranks/device_ranks.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/ranks/nccl_ranks.h"
#include "backend/cuda/ranks/staged_ranks.h"

namespace thimble {
namespace {

class DeviceSelf final : public Communicator {
 public:
  DeviceSelf(int size, CudaDevice& device) : size_(size), device_(device) {}

  std::string_view name() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return size_; }
  void exchange(const Pieces& out, const Pieces& in) override {
    for (int k = 1; k < size_; ++k) copy(out.of(0), in.of(k));
  }
  void all_gather(const Pieces& all) override {
    for (int k = 1; k < size_; ++k) copy(all.of(0), all.of(k));
  }
  void broadcast(std::span<std::byte>, int) override {}

 private:
  void copy(std::span<std::byte> from, std::span<std::byte> to) {
    if (to.empty()) return;
    check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToDevice,
                          device_.stream),
          "copying between parts");
  }

  const int size_;
  CudaDevice& device_;
};

// Where a rank is.
struct Place {
  std::array<char, 256> host;
  std::array<char, 64> card;
  int64_t process;
};

// The numbers of processes and cards.
struct Count {
  int processes, cards;
};

Count count(Communicator& ranks) {
  std::vector<Place> places(static_cast<size_t>(ranks.size()));
  Place& own = places[static_cast<size_t>(ranks.rank())];
  ::gethostname(own.host.data(), own.host.size() - 1);
  own.process = ::getpid();
  int card = 0;
  check(cudaGetDevice(&card), "asking for the card");
  check(cudaDeviceGetPCIBusId(own.card.data(), static_cast<int>(own.card.size()), card),
        "asking for the card's place");
  constexpr int64_t kSize = sizeof(Place);
  ranks.all_gather({reinterpret_cast<std::byte*>(places.data()), kSize, kSize});
  std::set<std::string> processes, cards;
  for (const Place& place : places) {
    const std::string host = std::string(place.host.data()) + " ";
    processes.insert(host + std::to_string(place.process));
    cards.insert(host + place.card.data());
  }
  return {static_cast<int>(processes.size()), static_cast<int>(cards.size())};
}

// Collectives through the host's memory, under the name that messages of the card have.
class HostRanks final : public Communicator {
 public:
  HostRanks(Communicator& ranks, std::string_view name) : ranks_(ranks), name_(name) {}

  std::string_view name() const override { return name_; }
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  double seconds() const override { return ranks_.seconds(); }
  void exchange(const Pieces& out, const Pieces& in) override { ranks_.exchange(out, in); }
  void all_gather(const Pieces& all) override { ranks_.all_gather(all); }
  void broadcast(std::span<std::byte> bytes, int root) override { ranks_.broadcast(bytes, root); }

 private:
  Communicator& ranks_;
  const std::string name_;
};

}  // namespace

std::unique_ptr<Communicator> make_device_ranks(Communicator& ranks, CudaDevice& device) {
  const Count all = count(ranks);
  if (all.cards == all.processes) {
    if (auto nccl = make_nccl_ranks(ranks, all.processes, device)) return nccl;
  }
  if (all.processes == 1) return make_device_self(ranks.size(), device);
  return make_staged_ranks(ranks, device);
}

std::unique_ptr<Communicator> make_host_ranks(Communicator& ranks, std::string_view name) {
  return std::make_unique<HostRanks>(ranks, name);
}

std::unique_ptr<Communicator> make_device_self(int size, CudaDevice& device) {
  return std::make_unique<DeviceSelf>(size, device);
}

int card_of_rank(int cards) {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* const text = std::getenv(variable);
    if (text != nullptr && cards > 0) return std::atoi(text) % cards;
  }
  return 0;
}

}  // namespace thimble
