rows = planets()
emit_log(f"{len(rows)} planets came from the host")

earth = next(row for row in rows if row.name == "Earth")
worst = 0.0
for row in rows:
    # Kepler's third law: the square of the year is as the cube of the distance.
    year = row.year_days / earth.year_days
    distance = row.distance_million_km / earth.distance_million_km
    off = year**2 / distance**3 - 1
    worst = max(worst, abs(off))
    emit_intermediate(row.name, {"years": round(year, 2), "off_percent": round(100 * off, 2)})

farthest = max(rows, key=lambda row: row.distance_million_km)
print("light takes", light_minutes(farthest.distance_million_km), "minutes to", farthest.name)
emit_result({"law_holds": worst < 0.03, "off_at_most_percent": round(100 * worst, 2)})
