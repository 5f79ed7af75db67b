#include "execute/staging_buffers.h"

#include <cstring>

namespace thimble {
namespace {

constexpr size_t kSmall = 4096;

}  // namespace

StagingBuffers::StagingBuffers(const Graph& graph, const std::vector<Bytes>& homes,
                               Backend& backend, Memory& arena)
    : backend_(backend), place_(graph.values.size(), -1) {
  int64_t results_size = 0;
  const auto add = [&](ValueId value, int64_t& end) -> Place& {
    place_[value.at()] = static_cast<int>(places_.size());
    Place& place = places_.emplace_back();
    place.device = arena.base() + homes[value.at()].count;
    place.offset = end;
    place.size = static_cast<size_t>(graph[value].type.bytes().count);
    end += align_up(graph[value].type.bytes()).count;
    return place;
  };
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer.valid() || value.role != Role::input || homes[v].count < 0) continue;
    add(make_id<ValueId>(v), slot_size_).input = true;
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (!has(input)) continue;
      places_[static_cast<size_t>(place_[input.at()])].read_in[static_cast<size_t>(node.phase)] =
          true;
    }
  }
  for (const ValueId result : graph.results) {
    if (!has(result)) add(result, results_size);
  }
  memory_ = backend.allocate_host(Bytes(2 * slot_size_ + results_size));
  if (memory_->size().count > 0) {
    std::memset(memory_->base(), 0, static_cast<size_t>(memory_->size().count));
  }
  for (auto& event : copied_) event = backend.make_event();
}

std::span<std::byte> StagingBuffers::bytes_of(ValueId value) const {
  const Place& place = places_[static_cast<size_t>(place_[value.at()])];
  return {slot(place.input ? current_ : 2) + place.offset, place.size};
}

void StagingBuffers::upload(Phase phase) {
  for (const Place& place : places_) {
    if (!place.input || !place.read_in[static_cast<size_t>(phase)]) continue;
    backend_.queue_copy_in(place.device, {slot(current_) + place.offset, place.size});
  }
  if (phase != Phase::per_microbatch) return;
  copied_[static_cast<size_t>(current_)]->mark();
  const int before = current_;
  current_ = 1 - current_;
  copied_[static_cast<size_t>(current_)]->wait();
  for (const Place& place : places_) {
    if (!place.input || place.size > kSmall) continue;
    std::memcpy(slot(current_) + place.offset, slot(before) + place.offset, place.size);
  }
}

void StagingBuffers::download() {
  for (const Place& place : places_) {
    if (place.input) continue;
    backend_.queue_copy_out({slot(2) + place.offset, place.size}, place.device);
  }
}

}  // namespace thimble
